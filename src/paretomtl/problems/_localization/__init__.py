"""Camera localization on ApolloScape: position and rotation."""
