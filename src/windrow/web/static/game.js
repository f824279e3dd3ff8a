// What the modules of the board page share: the game as it stands, and the parts of the page. It imports nothing, and
// holds no behaviour, so that everything else may import it.

export const game = {
  welcome: null, // what the server has
  position: null, // the newest description of the position
  future: [], // moves taken back, to go forward again
  odds: { a: [], b: [] }, // by side, the expected result of the first player at every ply
  analyses: { a: null, b: null }, // the newest update about the position
  thinking: {}, // by side, {number, kind, start}: what was asked
  isAnalysing: true,
  isPaused: false, // a search whose turn it is waits
  turn: 0, // counts positions; what belongs to an older one is dropped
};

// The connection is there from the beginning on, the others as soon as the server has said what it has.
export const page = { link: null, controls: null, explorer: null, view: null };
