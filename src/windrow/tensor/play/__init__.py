"""Games of a network against itself on the device, and the positions that they leave to learn from."""
