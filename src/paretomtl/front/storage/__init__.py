"""A front on disk: its folder, its record, its models, tables and exports."""
