"""The backends: runtimes that can evaluate a network, behind one interface.

`catalog` lists them, `runner` defines their interface, `source` holds the network that they are given, and each runtime
has a file of its own. `choice` measures them against each other; `agreement` bounds the error of reduced precision.
Nothing here imports a runtime before it is used.
"""
