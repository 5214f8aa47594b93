"""What all rooms share: the gate for input, files, models' and corpora's places, signatures, the bootstrap."""
