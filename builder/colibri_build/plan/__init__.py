"""What the firmware needs against what the board has."""
