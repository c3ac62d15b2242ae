"""Prints `docs/reference/cli.md`: every command's help, as a user sees it."""

import click

from turnout.cli.main import command

WIDTH = 88


def pages(group: click.Command, path: tuple[str, ...]) -> list[str]:
    """Return the help of a command and of all beneath it."""
    context = click.Context(
        group, info_name=" ".join(path), terminal_width=WIDTH, **command.context_settings
    )
    found = [f"## `{' '.join(path)}`\n\n```text\n{group.get_help(context)}\n```\n"]
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            child = group.get_command(context, name)
            if child is not None and not child.hidden:
                found += pages(child, (*path, name))
    return found


def main() -> None:
    """Print the page."""
    head = "# Command line\n\nMade from the commands' own help; see [exit codes](exit-codes.md).\n"
    click.echo("\n".join([head, *pages(command, ("turnout",))]), nl=False)


if __name__ == "__main__":
    main()
