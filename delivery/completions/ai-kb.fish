# Completion of ai-kb in fish: that of quaid, which knows both.
source (status dirname)/quaid.fish
