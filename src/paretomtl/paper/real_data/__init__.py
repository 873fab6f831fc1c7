"""Studies on three tasks and on other real data: census, faces, localization, three digits."""
