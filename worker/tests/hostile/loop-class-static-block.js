// expect: limit cpu_time
class A { static { for (;;); } }
