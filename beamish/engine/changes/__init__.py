"""Changes of a table that is not beamish's, as updates for a suppress."""
