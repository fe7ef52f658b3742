// expect: thrown InternalError
throw new InternalError('out of memory')
