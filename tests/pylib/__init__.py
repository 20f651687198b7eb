"""What the scripts beside this folder share."""
