"""The `ductor` command. Talks to a server over its public API, or validates offline; it never touches run state."""
