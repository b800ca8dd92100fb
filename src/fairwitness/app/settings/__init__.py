"""The settings of `fairwitness.toml`, read from the checkout and from the user configuration."""
