enum Color { Red, Green = 5, Blue, Name = "name", Mixed = Green * 2 }
const enum Flags { None = 0, A = 1 << 0, B = 1 << 1, Both = A | B }
enum Text { A = "a", B = A, "x-y" = "z" }
return [Color.Red, Color.Green, Color.Blue, Color.Name, Color.Mixed, Color[5], Flags.Both, Text.B, Text["x-y"], Object.keys(Color)];
