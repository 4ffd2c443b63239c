"""The operator in torch: its functional API, its autograd.Function, its operators for compilers, its rows."""
