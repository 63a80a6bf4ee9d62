"""Language models behind one port: what a conversation is, and how each provider is spoken to. Knows no run."""
