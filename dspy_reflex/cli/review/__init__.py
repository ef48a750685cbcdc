"""`dspy-reflex review`: what people say of proposed rules."""
