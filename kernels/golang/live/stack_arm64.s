#include "textflag.h"

// func stackHigh() uintptr: g.stack.hi, the second word of g in every Go so far.
TEXT ·stackHigh(SB),NOSPLIT,$0-8
	MOVD 8(g), R0
	MOVD R0, ret+0(FP)
	RET
