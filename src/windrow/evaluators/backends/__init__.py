"""The runtimes that can evaluate a network, behind one interface.

`catalog` lists them, `runner` says what one must do, `source` holds the network that is given to them, and each runtime
has a file of its own. `choice` measures them against each other, `agreement` says how far reduced precision may stray.
Nothing here imports a runtime before it is used.
"""
