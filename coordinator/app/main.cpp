// layerfarm: the command line. Every subcommand has a file cmd_<name>.cpp; what its flags are is in
// command_line.cpp.
#include "coordinator/app/command_line.h"

int main(int argc, char** argv) {
  return layerfarm::coordinator::app::run_command_line(argc, argv);
}
