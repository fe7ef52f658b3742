// The line of an error stays what it is, whatever the decorators become.
function log(
  value: unknown,
  context: ClassMethodDecoratorContext,
) {
  return value as any;
}

@(
  (value: any) =>
    value
) // a comment
abstract class Thrower {
  @log
  // between them
  @log /* and here */
  private
  static
  throwIt(): never {
    throw new Error("thrown"); // throws here
  }

  @((_: unknown, __: unknown) => undefined)
  accessor wide: Array<
      string
    > = [
      "a",
    ]
  go() { (Thrower as any).throwIt() }
}
class Child extends (Thrower as any) {}
(new Child() as any).go();
