'use strict';
// What a cell was given besides its code: environment variables, a directory. After
// the cell the old ones are back, unless the cell has changed them itself.

const fs = require('node:fs');
const { openSync, closeSync, statSync, constants } = fs;
const { chdir } = process;
const { env } = process;

class Surroundings {
  constructor({ env, cwd }) {
    this.given = env || {};
    this.cwd = cwd;
    this.before = [];
  }

  // enter sets them. When it throws nothing is changed.
  enter() {
    for (const name of Object.keys(this.given)) {
      if (!name || /[=\0]/.test(name) || this.given[name].includes('\0')) throw new Error(`not an environment variable: ${JSON.stringify(name)}`);
    }
    if (this.cwd) this.enterDirectory();
    for (const name of Object.keys(this.given)) {
      this.before.push([name, env[name]]);
      env[name] = this.given[name];
    }
  }

  leave() {
    for (const [name, before] of this.before) {
      if (env[name] !== this.given[name]) continue; // the cell's own change
      if (before === undefined) delete env[name];
      else env[name] = before;
    }
    if (this.home !== undefined) this.leaveDirectory();
  }

  enterDirectory() {
    // As a descriptor, the old directory can be gone back to even if it was renamed.
    const O_PATH = 0o10000000;
    this.home = openSync('.', O_PATH | constants.O_DIRECTORY);
    try {
      chdir(this.cwd);
      this.went = statSync('.', { bigint: true });
    } catch (error) {
      closeSync(this.home);
      this.home = undefined;
      // It has the name that it has in every language.
      const reason = error.message.replace(/^\w+: |, chdir .*/gs, '');
      throw Object.assign(new Error(`the directory of the cell can't be entered: ${this.cwd}: ${reason}`), { name: 'InvalidDirectory' });
    }
  }

  leaveDirectory() {
    try {
      const now = statSync('.', { bigint: true });
      if (now.dev === this.went.dev && now.ino === this.went.ino) chdir(`/proc/self/fd/${this.home}`);
    } catch {
      // The old directory can no longer be entered: stay.
    }
    closeSync(this.home);
  }
}

module.exports = { Surroundings };
