"""From placed IR to kernel text: instructions over tile registers, memory plan, printing (docs/compiler.md)."""
