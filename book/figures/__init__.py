"""The figures of the book, one module a page; `style` is what they share. Installed as `normgrad_figures`."""
