"""The routes: each turns a call into one use case, and its result into an answer model. No rules of their own."""
