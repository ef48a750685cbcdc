"""Importers: public failure data sets and tables to rows in our line format, one file per format."""
