"""The dashboard: pages and streams over the read models of app."""
