"""The ports made real: each sub-package binds them to one technology. Only the composition root names one."""
