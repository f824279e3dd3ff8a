"""Self-play on the device, and the replay of its positions for training."""
