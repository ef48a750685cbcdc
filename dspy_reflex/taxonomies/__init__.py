"""Label sets that come with the package, as TOML files, and the loader for these and the user's own."""
