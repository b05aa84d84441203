// refund version 1: written by pawl for the Stately editor. The chart only; guards, actions and actors are stubs.
import { fromPromise, setup } from 'xstate';

export const machine = setup({
  types: {} as { context: Record<string, unknown>; events: { type: 'CANCEL' } | { type: 'DEADLINE_EXCEEDED' } | { type: 'HOLD' } | { type: 'RESUME' } },
  actors: {
    issueRefund: fromPromise<unknown, unknown>(async () => ({})),
    notifyVendor: fromPromise<unknown, unknown>(async () => ({})),
    readOrder: fromPromise<unknown, unknown>(async () => ({})),
    readRefund: fromPromise<unknown, unknown>(async () => ({})),
  },
  actions: {
    conclude: (_args: unknown, _params: unknown) => {},
    keepOrder: (_args: unknown, _params: unknown) => {},
    keepRefund: (_args: unknown, _params: unknown) => {},
    keepRefundId: (_args: unknown, _params: unknown) => {},
    markNotified: (_args: unknown, _params: unknown) => {},
    note: (_args: unknown, _params: unknown) => {},
    noteError: (_args: unknown, _params: unknown) => {},
    noteSender: (_args: unknown, _params: unknown) => {},
  },
  guards: {
    amountDiffers: (_args: unknown, _params: unknown) => true,
    currencyDiffers: (_args: unknown, _params: unknown) => true,
    isOverLimit: (_args: unknown, _params: unknown) => true,
    orderIsClosed: (_args: unknown, _params: unknown) => true,
    orderIsUnknown: (_args: unknown, _params: unknown) => true,
    providerRefused: (_args: unknown, _params: unknown) => true,
    refundIsAsAsked: (_args: unknown, _params: unknown) => true,
  },
  delays: {
    heldTooLong: 604800000,
  },
}).createMachine({
  context: {},
  id: 'refund',
  initial: 'verifying',
  states: {
    verifying: {
      description: 'Reads the order. Nothing has happened yet, so it can still be held or cancelled.',
      invoke: [
        {
          id: 'readOrder',
          src: 'readOrder',
          onDone: [
            {
              target: [
                'deciding',
              ],
              actions: [
                {
                  type: 'keepOrder',
                },
              ],
            },
          ],
          onError: [
            {
              target: [
                'review',
              ],
              actions: [
                {
                  type: 'noteError',
                  params: {
                    what: 'the order could not be read',
                  },
                },
              ],
            },
          ],
        },
      ],
      on: {
        HOLD: [
          {
            target: [
              'held',
            ],
            actions: [
              {
                type: 'noteSender',
                params: {
                  what: 'held',
                },
              },
            ],
          },
        ],
        CANCEL: [
          {
            target: [
              'declined',
            ],
            actions: [
              {
                type: 'noteSender',
                params: {
                  what: 'cancelled',
                },
              },
            ],
          },
        ],
        DEADLINE_EXCEEDED: [
          {
            target: [
              'declined',
            ],
            actions: [
              {
                type: 'note',
                params: {
                  reason: 'too late',
                },
              },
            ],
          },
        ],
      },
    },
    held: {
      description: 'Somebody wants to look first. The order is read anew afterwards.',
      on: {
        RESUME: [
          {
            target: [
              'verifying',
            ],
            actions: [
              {
                type: 'note',
                params: {
                  reason: '',
                },
              },
            ],
          },
        ],
        CANCEL: [
          {
            target: [
              'declined',
            ],
            actions: [
              {
                type: 'noteSender',
                params: {
                  what: 'cancelled',
                },
              },
            ],
          },
        ],
        DEADLINE_EXCEEDED: [
          {
            target: [
              'declined',
            ],
            actions: [
              {
                type: 'note',
                params: {
                  reason: 'too late',
                },
              },
            ],
          },
        ],
      },
      after: {
        heldTooLong: [
          {
            target: [
              'review',
            ],
            actions: [
              {
                type: 'note',
                params: {
                  reason: 'held for a week',
                },
              },
            ],
          },
        ],
      },
    },
    deciding: {
      description: 'Passes at once: the row must be what the provider has, and small enough.',
      always: [
        {
          target: [
            'declined',
          ],
          guard: {
            type: 'orderIsUnknown',
          },
          actions: [
            {
              type: 'note',
              params: {
                reason: 'the provider has no such order',
              },
            },
          ],
        },
        {
          target: [
            'declined',
          ],
          guard: {
            type: 'orderIsClosed',
          },
          actions: [
            {
              type: 'note',
              params: {
                reason: 'the order may not be refunded',
              },
            },
          ],
        },
        {
          target: [
            'declined',
          ],
          guard: {
            type: 'currencyDiffers',
          },
          actions: [
            {
              type: 'note',
              params: {
                reason: 'the order was paid in another currency',
              },
            },
          ],
        },
        {
          target: [
            'declined',
          ],
          guard: {
            type: 'amountDiffers',
          },
          actions: [
            {
              type: 'note',
              params: {
                reason: 'the order was paid with another amount',
              },
            },
          ],
        },
        {
          target: [
            'review',
          ],
          guard: {
            type: 'isOverLimit',
          },
          actions: [
            {
              type: 'note',
              params: {
                reason: 'the amount is over the limit',
              },
            },
          ],
        },
        {
          target: [
            'refunding',
          ],
        },
      ],
    },
    refunding: {
      description: 'Moves the money, once. Whatever happens here is settled before the refund goes on.',
      invoke: [
        {
          id: 'issueRefund',
          src: 'issueRefund',
          onDone: [
            {
              target: [
                'checking',
              ],
              actions: [
                {
                  type: 'keepRefundId',
                },
              ],
            },
          ],
          onError: [
            {
              target: [
                'declined',
              ],
              guard: {
                type: 'providerRefused',
              },
              actions: [
                {
                  type: 'noteError',
                  params: {
                    what: 'the provider refused',
                  },
                },
              ],
            },
            {
              target: [
                'review',
              ],
              actions: [
                {
                  type: 'noteError',
                  params: {
                    what: 'not refunded',
                  },
                },
              ],
            },
          ],
        },
      ],
    },
    checking: {
      description: 'Reads the refund back, from the provider and not from its answer.',
      invoke: [
        {
          id: 'readRefund',
          src: 'readRefund',
          onDone: [
            {
              target: [
                'comparing',
              ],
              actions: [
                {
                  type: 'keepRefund',
                },
              ],
            },
          ],
          onError: [
            {
              target: [
                'review',
              ],
              actions: [
                {
                  type: 'noteError',
                  params: {
                    what: 'refunded, but it could not be read back',
                  },
                },
              ],
            },
          ],
        },
      ],
    },
    comparing: {
      description: 'Passes at once: order, amount and currency must be what was asked for.',
      always: [
        {
          target: [
            'notifying',
          ],
          guard: {
            type: 'refundIsAsAsked',
          },
        },
        {
          target: [
            'review',
          ],
          actions: [
            {
              type: 'note',
              params: {
                reason: 'refunded, but not what was asked for',
              },
            },
          ],
        },
      ],
    },
    notifying: {
      description: 'Tells the vendor. The money has moved rightly, so a mail that cannot be sent changes no outcome.',
      invoke: [
        {
          id: 'notifyVendor',
          src: 'notifyVendor',
          onDone: [
            {
              target: [
                'done',
              ],
              actions: [
                {
                  type: 'markNotified',
                },
              ],
            },
          ],
          onError: [
            {
              target: [
                'done',
              ],
              actions: [
                {
                  type: 'noteError',
                  params: {
                    what: 'the vendor was not told',
                  },
                },
              ],
            },
          ],
        },
      ],
    },
    done: {
      type: 'final',
      entry: [
        {
          type: 'conclude',
          params: {
            outcome: 'done',
          },
        },
      ],
    },
    declined: {
      type: 'final',
      entry: [
        {
          type: 'conclude',
          params: {
            outcome: 'declined',
          },
        },
      ],
    },
    review: {
      type: 'final',
      entry: [
        {
          type: 'conclude',
          params: {
            outcome: 'review',
          },
        },
      ],
    },
  },
});
