// What the modules of the board page share: the game as it stands, and the parts of the page. It imports nothing, and
// holds no behaviour, so that everything else may import it.

export const game = {
  welcome: null, // what the server has
  position: null, // the newest description of the position
  line: { moves: [], names: [], movers: [], isOver: false }, // the whole game, with moves that are taken back; isOver: it has been played to its end
  looks: { a: [], b: [] }, // by side, at every ply, what a search said: {values, visits, moves: Map(action -> [visits, q])}
  analyses: { a: null, b: null }, // the newest update about the position
  thinking: {}, // by side, {number, kind, start}: what was asked
  hasHints: false, // whether the page shows what a search thinks
  isPaused: false, // a search whose turn it is waits
  isReviewing: false, // a search looks at one move of the game after the other
  turn: 0, // counts positions; what belongs to an older one is dropped
};

// The connection is there from the beginning on, the others as soon as the server has said what it has.
export const page = { link: null, controls: null, explorer: null, view: null };
