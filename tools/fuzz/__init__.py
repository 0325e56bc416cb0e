"""Hostile bytes by the million: who reads them, what makes them, and a broker that is fed them while it runs."""
