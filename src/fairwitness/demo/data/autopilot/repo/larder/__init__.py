"""What is in the larder."""
