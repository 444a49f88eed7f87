"""Series side by side: what is named, loaded, judged and said."""
