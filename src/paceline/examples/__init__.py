"""Jobs that run as they are: what `paceline demo` shows and `paceline init --example` writes."""
