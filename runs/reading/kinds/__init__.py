"""One module for each kind of foreign text; `runs.reading.readers` names them."""
