"""Jobs that run without changes: `paceline demo` shows them and `paceline init --example` writes them."""
