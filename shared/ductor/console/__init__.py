"""The web console's own files: a page, styles and scripts that the API serves as they are. Holds no Python."""
