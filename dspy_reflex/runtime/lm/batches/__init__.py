"""Many chats at once, at half the price, from a folder that knows where they are."""
