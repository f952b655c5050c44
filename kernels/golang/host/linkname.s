// This file lets the compiler take a function without a body: it is linked by name.
