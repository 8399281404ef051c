// The boundary between a program and its ranks. Linking to flow::flow wraps main and exit, so that
// the program's own main runs once on each thread rank (FLOW_RANKS), and a rank that fails says why
// before it ends.
#pragma once

namespace flow::internal {

using ProgramMain = int (*)(int argc, char** argv, char** environment);

// Runs main as the environment asks: on thread ranks, as the rank of a job, or plainly. An error
// that leaves main on a rank is printed, told to the other ranks and becomes the exit code:
// 1 InvalidArgument, Unsupported, InternalError; 70 ranks disagree; 71 time-out; 72 a rank is lost,
// or an exception that is not flow's; 73 out of memory; 74 input or output.
int run_program(ProgramMain program, int argc, char** argv, char** environment);

// What a call of exit comes to before the process ends: the other ranks are told of a code that is
// not 0. True on a thread rank: its peers still run, so that the process may not destroy what is
// static, and has to end at once.
bool leave_program(int code);

}  // namespace flow::internal
