"""Why a script failed, from its last output: the line that matters, the place in the code, and what helps."""
