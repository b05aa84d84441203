export { PawlError, isPawlError, ERROR_CODES, type ErrorCode } from './errors.ts';
