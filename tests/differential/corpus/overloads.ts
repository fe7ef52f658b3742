function f(a: string): string;
function f(a: number): number;
function f(a: any): any { return a; }
class A {
  m(a: string): void;
  m(a: number): void;
  m(a: any) { return [a]; }
}
declare function ghost(): void;
declare const phantom: string;
return [f("x"), f(1), new A().m(2)];
