"""Studies on real data: census, faces, localization, three digits."""
