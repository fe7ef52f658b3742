type Row = {
  id: number;
};

interface Other {
  a: string;
}

const rows: Row[] = [];
const first = rows[0] as Row;
return first.id; // throws here
