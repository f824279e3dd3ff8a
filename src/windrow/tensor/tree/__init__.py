"""The trees as tensors: where nodes are, how new ones are made, how roots move, what trees take and hold."""
