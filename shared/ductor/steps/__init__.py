"""One module per step type: its args, its edges and its own rules. Knows neither HTTP, YAML nor storage."""
