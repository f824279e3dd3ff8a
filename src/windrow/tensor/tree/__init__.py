"""The search trees as tensors: storage of nodes, making of new nodes, moving of roots, and memory and statistics."""
