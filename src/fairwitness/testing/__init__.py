"""Scripted worlds and conformance kits that ship with the product."""
