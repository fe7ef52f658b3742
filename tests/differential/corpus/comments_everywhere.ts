/* lead */ const /* a */ x /* b */ : /* c */ number /* d */ = /* e */ 1 /* f */ as /* g */ number; // tail
const f = (/* p */ y /* q */ ? /* r */ : number) /* s */ : /* t */ number /* u */ => /* v */ y ?? x;
switch (/* w */ x /* x */) /* y */ { /* z */ case /* 1 */ 1 /* 2 */ : await mcp.c.c(/* 3 */ { x }); }
return f();
