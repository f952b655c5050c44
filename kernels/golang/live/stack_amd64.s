#include "textflag.h"

// func stackHigh() uintptr: g.stack.hi, the second word of g in every Go so far.
TEXT ·stackHigh(SB),NOSPLIT,$0-8
	MOVQ (TLS), AX
	MOVQ 8(AX), AX
	MOVQ AX, ret+0(FP)
	RET
